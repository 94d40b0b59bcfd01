"""The target `numpy`: the interpreter, against which every other target is tested."""
