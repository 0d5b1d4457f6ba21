# what kernel/module.c defines; the module is there after `make kernel` only

from collections.abc import Buffer
