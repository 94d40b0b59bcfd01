"""Toys: fragment shaders of ShaderToy, read, drawn and refused."""
