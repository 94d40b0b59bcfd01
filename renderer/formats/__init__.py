"""Files of strangers as plain data: images, meshes, glTF, arrays, matrices."""
