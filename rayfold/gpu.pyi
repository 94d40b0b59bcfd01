from renderer.gpu import *
