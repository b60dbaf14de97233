# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
export SHELL=/bin/bash
export PS1='\w $ '
