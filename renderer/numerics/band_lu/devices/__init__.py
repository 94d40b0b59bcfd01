"""Band LU on one device or several: storage of block columns, factorization, uploads, solves."""
