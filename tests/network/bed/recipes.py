# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Steps of a template that can only be built with the world in reach and its authority trusted."""

from bed import addresses as a
from bed import goods

STEPS = (
    f"pip install --index-url https://{a.PYPI}/simple/ python-dateutil",
    f"curl -sS --fail https://{a.FILES}/hello > /opt/hello",
    f"git clone https://{a.GIT}/{goods.REPOSITORY} /opt/cloned",
    f"mkdir /opt/app && cd /opt/app && npm install --registry https://{a.NPM}/ is-odd && rm -rf /root/.npm",
    f"""python3 -c 'import urllib.request as u; print(u.urlopen("https://{a.FILES}/hello").read())'""",
)
