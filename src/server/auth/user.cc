#include "server/auth/user.h"
