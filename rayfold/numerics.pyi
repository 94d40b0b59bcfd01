from renderer.numerics import *
