/* How the program starts others, waits for them, becomes one, and ends: functions in the place of the C library's, exchanged as
   native calls are (native/native_host.h). Each makes the native call, too, where there is one. */
#pragma once

#include "native/native_host.h"
