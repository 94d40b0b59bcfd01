from renderer.flames import *
