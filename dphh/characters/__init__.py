"""Characters that cannot be seen or that programs interpret: how they are escaped."""
