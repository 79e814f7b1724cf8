"""Moving data between Redis and stores of ``lsmkv serve``."""
