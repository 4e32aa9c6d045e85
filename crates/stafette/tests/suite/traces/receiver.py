"""A receiver of traces that speaks gRPC by TLS, with the protocol's own messages.

Prints its port, then each span that it gets as a line of JSON.
"""

import json
import sys
from concurrent import futures

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


class Taker(service.TraceServiceServicer):
    def Export(self, request, context):
        shown = dict(context.invocation_metadata())
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    print(json.dumps({
                        "trace": span.trace_id.hex(),
                        "id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "name": span.name,
                        "error": span.status.message,
                        "attributes": {pair.key: value(pair.value) for pair in span.attributes},
                        "links": [[link.trace_id.hex(), link.span_id.hex()] for link in span.links],
                        "key": shown.get("x-key"),
                    }), flush=True)
        return messages.ExportTraceServiceResponse()


certificate, key = (open(name, "rb").read() for name in sys.argv[1:3])
server = grpc.server(futures.ThreadPoolExecutor(2))
service.add_TraceServiceServicer_to_server(Taker(), server)
port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([(key, certificate)]))
server.start()
print(port, flush=True)
server.wait_for_termination()
