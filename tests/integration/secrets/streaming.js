// SPDX-License-Identifier: Apache-2.0
// Servers for streaming.test: what is long, slow, unended or cut short. `streaming.js FOLDER`: 9443 has HTTP/2 and HTTP/1, 9444 HTTP/1 alone. FOLDER/written: bytes of /stuck so far.
const http2 = require('http2'), https = require('https'), fs = require('fs'), crypto = require('crypto');
const folder = process.argv[2];
const read = (name) => fs.readFileSync(`${folder}/${name}`);
const block = Buffer.alloc(65536, 'a');
const waiting = [];

function pour(res, left, told) {
  let n = 0;
  const more = () => {
    while (left > 0) {
      const part = left >= block.length ? block : block.subarray(0, left);
      left -= part.length;
      n += part.length;
      if (told) fs.writeFileSync(`${folder}/written`, String(n));
      if (!res.write(part)) return res.once('drain', more);
    }
    res.end();
  };
  more();
}

const endpoints = {
  big: (req, res, [size]) => { res.writeHead(200, { 'content-length': size }); pour(res, +size, false); },
  stuck: (req, res, [size]) => { res.writeHead(200, { 'content-length': size }); pour(res, +size, true); },
  up: (req, res) => {
    let n = 0;
    req.on('data', (c) => { n += c.length; });
    req.on('end', () => res.end(`got ${n}\n`));
  },
  // The second event comes only after a request that the client makes when it has the first.
  events: (req, res) => { res.writeHead(200, { 'content-type': 'text/event-stream' }); res.write('data: first\n\n'); waiting.push(res); },
  go: (req, res) => { waiting.splice(0).forEach((w) => w.end('data: second\n\n')); res.end('gone\n'); },
  // As gRPC does it: the answer begins before the request has ended, and its status is a trailer.
  talk: (req, res) => {
    res.writeHead(200, { 'content-type': 'application/grpc', trailer: 'grpc-status' });
    req.on('data', (c) => res.write(Buffer.from('re: ' + c)));
    req.on('end', () => { res.addTrailers({ 'grpc-status': '0', 'grpc-message': 'fine' }); res.end(); });
  },
  die: (req, res, [how]) => {
    res.writeHead(200, how === 'length' ? { 'content-length': 100000 } : {});
    res.write('the first part');
    setTimeout(() => (req.httpVersionMajor === 2 ? (how === 'length' ? res.stream.close(2) : req.socket.destroy()) : req.socket.destroy()), 30);
  },
  slow: (req, res) => {
    let n = 0;
    const timer = setInterval(() => { res.write(`${n++}`); if (n === 10) { clearInterval(timer); res.end('\n'); } }, 60);
  },
};

function serve(req, res) {
  const [, name, ...rest] = req.url.split('/');
  if (endpoints[name]) endpoints[name](req, res, rest);
  else res.end(`hello ${req.httpVersion}\n`);
}
function upgrade(req, socket) {
  const accept = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.on('error', () => {});
  socket.pipe(socket);
}
const options = { key: read('server.key'), cert: read('server.pem'), allowHTTP1: true };
const servers = [http2.createSecureServer(options, serve).listen(9443), https.createServer(options, serve).listen(9444)];
servers[1].on('upgrade', upgrade);
process.on('uncaughtException', (e) => { if (!['ECONNRESET', 'EPIPE', 'ERR_STREAM_WRITE_AFTER_END', 'ERR_HTTP2_INVALID_STREAM'].includes(e.code)) throw e; });
Promise.all(servers.map((s) => new Promise((done) => (s.listening ? done() : s.once('listening', done))))).then(() => console.log('READY'));
