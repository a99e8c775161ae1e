// libmooncake.so is all of the static libraries; a shared library needs one source of its own.
