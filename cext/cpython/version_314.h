/* CPython 3.14: only what differs from all other versions; see version_since_314.h (cpython/version.h). */
#pragma once

#include "cpython/version_since_314.h"
