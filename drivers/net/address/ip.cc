#include "drivers/net/address/ip.h"
