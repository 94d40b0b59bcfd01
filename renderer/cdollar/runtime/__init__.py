"""Loading, binding of arguments, memory, the command and the prompt."""
