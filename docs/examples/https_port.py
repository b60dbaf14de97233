# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
import time
import urllib.error
import urllib.request

from e2b import Sandbox

SERVER = """
import http.server, ssl
server = http.server.HTTPServer(("127.0.0.1", 8443), http.server.SimpleHTTPRequestHandler)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain("/tmp/cert.pem", "/tmp/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

with Sandbox.create(network={"https_ports": [8443]}) as sandbox:
    own = "openssl req -x509 -newkey ed25519 -nodes -subj /CN=own -keyout /tmp/key.pem -out /tmp/cert.pem"
    sandbox.commands.run(own)
    sandbox.files.write("server.py", SERVER)
    sandbox.commands.run("python server.py", background=True)
    for _ in range(50):
        try:
            with urllib.request.urlopen(f"https://{sandbox.get_host(8443)}/") as reply:
                print(reply.status)
            break
        except urllib.error.HTTPError:  # 502 until somebody listens on the port
            time.sleep(0.1)
