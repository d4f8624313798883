#include "cli/commands.h"

int main(int argc, char** argv) { return dibs::cli::run(argc, argv); }
