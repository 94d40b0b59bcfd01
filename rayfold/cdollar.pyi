from renderer.cdollar import *
