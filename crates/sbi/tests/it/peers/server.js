// An HTTP/2 server of Node.js (nghttp2) for the tests of the client; it prints its port. What it does for a path is below.
'use strict';
const http2 = require('node:http2');

const server = http2.createServer({
  // DATA and HEADERS of random padding, header blocks of any size.
  paddingStrategy: http2.constants.PADDING_STRATEGY_MAX,
  maxSendHeaderBlockLength: 1 << 20,
  settings: { initialWindowSize: 1000, maxConcurrentStreams: 100 },
});

const pattern = (length) => {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at++) bytes[at] = (at * 31) % 251;
  return bytes;
};

server.on('stream', (stream, headers) => {
  const { session } = stream;
  // A stream that is reset here is no error of the server.
  stream.on('error', () => {});
  switch (headers[':path']) {
    case '/echo': {
      // While the request arrives, the window of all streams becomes smaller than what was sent, then larger.
      const parts = [];
      let size = 0;
      let changes = 0;
      stream.on('data', (part) => {
        parts.push(part);
        size += part.length;
        if (size > (changes + 1) * 20000 && changes < 6) {
          const [first, next] = [[100000], [0, 65535], [0, 300], [1000000], [0, 500], [0, 30000]][changes++];
          // A window of 0 lasts until the client has acknowledged it.
          session.settings({ initialWindowSize: first }, () => {
            if (next !== undefined) session.settings({ initialWindowSize: next });
          });
        }
      });
      stream.on('end', () => {
        stream.respond({ ':status': 200, 'x-changes': String(changes) });
        stream.end(Buffer.concat(parts));
      });
      break;
    }
    case '/large':
      stream.respond({ ':status': 200 });
      stream.end(pattern(3000000));
      break;
    case '/trailers':
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'abc' }));
      stream.end('with trailers');
      break;
    case '/interim':
      stream.additionalHeaders({ ':status': 103, link: '</a>' });
      stream.additionalHeaders({ ':status': 102 });
      stream.respond({ ':status': 201 });
      stream.end('final');
      break;
    case '/long-head': {
      // More than a frame: HEADERS and CONTINUATION.
      const fields = { ':status': 200 };
      for (let number = 0; number < 20; number++) fields[`x-long-${number}`] = 'v'.repeat(2000) + number;
      stream.respond(fields);
      stream.end('long');
      break;
    }
    case '/head-only':
      stream.respond({ ':status': 204 }, { endStream: true });
      break;
    case '/refuse':
      stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
      break;
    case '/reset':
      // In the middle of an answer.
      stream.respond({ ':status': 200 });
      stream.write(pattern(5000), () => stream.destroy(new Error('broken on purpose')));
      break;
    case '/goaway':
      // What is in progress is answered behind the GOAWAY.
      session.goaway(http2.constants.NGHTTP2_NO_ERROR, stream.id);
      setImmediate(() => {
        stream.respond({ ':status': 200 });
        stream.end('the last one');
      });
      break;
    default:
      stream.respond({ ':status': 404 });
      stream.end();
  }
});

// The acknowledgement of a change that a closed session did not get.
server.on('session', (session) => session.on('error', () => {}));

server.listen(0, '127.0.0.1', () => console.log(server.address().port));
// The test closes this end.
process.stdin.on('end', () => process.exit(0)).resume();
