// SPDX-License-Identifier: Apache-2.0
// In the box: asks for each case with HTTP/1.1 and HTTP/2, from servers of both, and writes what it saw as lines of JSON. `probe.js OUTPUT`, the cases on standard input.
const http2 = require('http2'), https = require('https'), fs = require('fs'), readline = require('readline');
const out = fs.createWriteStream(process.argv[2]);
const ports = [9443, 9444];
const auth = `Bearer ${process.env.TOK}`;

const collect = (stream, done) => {
  const parts = [];
  stream.on('data', (c) => parts.push(c));
  stream.on('end', () => done(Buffer.concat(parts).toString('base64')));
};
const agents = {}, sessions = {};
function one1(port, path) {
  agents[port] ||= new https.Agent({ keepAlive: true, maxSockets: 8 });
  return new Promise((done) => {
    const req = https.get(`https://allowed.test:${port}${path}`, { agent: agents[port], headers: { authorization: auth, te: 'trailers' } }, (res) => {
      collect(res, (body) => done({ status: res.statusCode, headers: res.rawHeaders, body, trailers: res.rawTrailers }));
      res.on('error', (e) => done({ status: res.statusCode, error: e.code || e.message }));
    });
    req.on('error', (e) => done({ error: e.code || e.message }));
  });
}
function one2(port, path) {
  if (!sessions[port]) {
    sessions[port] = http2.connect(`https://allowed.test:${port}`);
    sessions[port].on('error', () => {});
  }
  return new Promise((done) => {
    const result = { trailers: {} };
    const req = sessions[port].request({ ':path': path, authorization: auth, te: 'trailers' });
    req.on('response', (h) => { result.status = h[':status']; result.headers = h; });
    req.on('trailers', (t) => { result.trailers = t; });
    req.on('error', (e) => done({ ...result, error: e.code || e.message }));
    collect(req, (body) => done({ ...result, body }));
  });
}

(async () => {
  const cases = [];
  for await (const path of readline.createInterface({ input: process.stdin }))
    for (const port of ports) cases.push([path, port, 1, one1], [path, port, 2, one2]);
  let next = 0;
  const worker = async () => {
    while (next < cases.length) {
      const [path, port, version, ask] = cases[next++];
      out.write(JSON.stringify({ case: path, port, version, ...(await ask(port, path)) }) + '\n');
    }
  };
  await Promise.all(Array.from({ length: 12 }, worker));
  Object.values(sessions).forEach((s) => s.close());
  out.end(() => process.exit(0));
})();
