// Carries the precompiled header that all libraries reuse.
