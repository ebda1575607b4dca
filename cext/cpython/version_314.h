/* CPython 3.14: what is told of it alone is that of no other; see version_since_314.h (cpython/version.h). */
#pragma once

#include "cpython/version_since_314.h"
