// SPDX-License-Identifier: Apache-2.0
// Servers that give back the credential they were sent, in every usual spelling; and ones that can't prove who they are. `server.js FOLDER`: FOLDER has server.key,
// server.pem and the bad certificates. Each answer with a spelled credential is described in FOLDER/sent, a line of JSON each; FOLDER/requests has every request.
const http2 = require('http2'), https = require('https'), fs = require('fs'), zlib = require('zlib'), { execFileSync } = require('child_process');
const folder = process.argv[2];
const read = (name) => fs.readFileSync(`${folder}/${name}`);
const note = (file, value) => fs.appendFileSync(`${folder}/${file}`, JSON.stringify(value) + '\n');

const hex = (n, width) => n.toString(16).padStart(width, '0');
const bytes = (text, spell) => [...Buffer.from(text)].map(spell).join('');
const based = (pad, url) => (text) => Buffer.from(pad + text + ':end').toString(url ? 'base64url' : 'base64');
const spellings = {
  plain: (t) => t,
  base64_0: based(''), base64_1: based('u'), base64_2: based('u:'),
  base64url_0: based('', true), base64url_1: based('?', true), base64url_2: based('~~', true),
  hex: (t) => bytes(t, (c) => hex(c, 2)), hex_upper: (t) => bytes(t, (c) => hex(c, 2).toUpperCase()),
  percent: (t) => encodeURIComponent(t), percent_all: (t) => bytes(t, (c) => '%' + hex(c, 2)),
  json: (t) => bytes(t, (c) => '\\u' + hex(c, 4)), javascript: (t) => bytes(t, (c) => '\\x' + hex(c, 2)),
  html: (t) => bytes(t, (c) => `&#${c};`), html_hex: (t) => bytes(t, (c) => `&#x${hex(c, 2)};`),
  utf16le: (t) => Buffer.from(t, 'utf16le').toString('latin1'), utf16be: (t) => Buffer.from(t, 'utf16le').swap16().toString('latin1'),
};
const kept = new Map();
const codings = {
  identity: (b) => b, gzip: zlib.gzipSync, deflate: zlib.deflateSync, raw: zlib.deflateRawSync, br: zlib.brotliCompressSync,
  zstd: (b) => {
    const key = b.toString('latin1');
    if (!kept.has(key)) kept.set(key, execFileSync('zstd', ['-q', '-19', '-c'], { input: b }));
    return kept.get(key);
  },
};
codings['gzip, br'] = (b) => codings.br(codings.gzip(b));
const words = Array.from({ length: 60 }, (_, i) => `line ${i} of what stands around it`).join('\n');

const value = (req) => (req.headers.authorization || 'none').replace(/^(Bearer|token) /, '');
const pause = () => new Promise((done) => setTimeout(done, 5));
async function pieces(res, body, size) {
  for (let at = 0; at < body.length; at += size) {
    res.write(body.subarray(at, at + size));
    if (at / size % 16 === 0) await pause();
  }
  res.end();
}

async function reflect(req, res, [spelling, coding, split]) {
  const spelled = Buffer.from(spellings[spelling](value(req)), 'latin1');
  const front = Buffer.from(words + '\n{"it":"'), body = Buffer.concat([front, spelled, Buffer.from('"}\n' + words)]);
  note('sent', { case: req.url, version: req.httpVersion, from: front.length, to: front.length + spelled.length, body: body.toString('base64') });
  const coded = codings[coding](body);
  const headers = { 'content-type': 'text/plain' };
  if (coding !== 'identity') headers['content-encoding'] = coding === 'raw' ? 'deflate' : coding;
  res.writeHead(split === 'lost' ? 404 : 200, headers);
  if (split === 'bytes') {
    const near = coding === 'identity' ? front.length : 0, end = coding === 'identity' ? front.length + spelled.length : 40;
    res.write(coded.subarray(0, near));
    for (let at = near; at < end; at++) res.write(coded.subarray(at, at + 1));
    res.end(coded.subarray(end));
  } else if (split === 'middle') {
    const at = coding === 'identity' ? front.length + (spelled.length >> 1) : coded.length >> 1;
    res.write(coded.subarray(0, at));
    setTimeout(() => res.end(coded.subarray(at)), 20);
  } else if (split === 'sevens') await pieces(res, coded, 7);
  else res.end(coded);
}

const endpoints = {
  reflect,
  show: (req, res) => {
    const parts = [];
    req.on('data', (c) => parts.push(c));
    req.on('end', () => {
      const body = Buffer.concat(parts), length = req.headers['content-length'];
      if (length !== undefined && +length !== body.length) return; // given up on its way
      note('requests', { port: req.socket.localPort, method: req.method, path: req.url, version: req.httpVersion, headers: req.headers, body: body.toString('latin1') });
      res.end('seen\n');
    });
  },
  heads: (req, res) => {
    const v = value(req);
    res.writeHead(302, { 'x-plain': `is ${v} it`, 'x-based': spellings.base64_1(v), 'x-hex': spellings.hex(v), 'set-cookie': [`a=${v}; Path=/`, `b=${encodeURIComponent(v)}`],
      location: `https://allowed.test/?key=${encodeURIComponent(v)}`, 'content-length': 0 });
    res.end();
  },
  trailers: (req, res) => {
    res.writeHead(200, { trailer: 'x-late, x-based' });
    res.write('body\n');
    res.addTrailers({ 'x-late': value(req), 'x-based': spellings.base64_2(value(req)) });
    res.end();
  },
  events: (req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    let n = 0;
    const timer = setInterval(() => {
      if (n++ < 3) return res.write(`data: ${value(req)} ${n}\n\n`);
      clearInterval(timer);
      res.end();
    }, 20);
  },
  odd: (req, res) => { res.writeHead(200, { 'content-encoding': 'rot13' }); res.end('text in an unknown coding\n'); },
  broken: (req, res) => { res.writeHead(200, { 'content-encoding': 'gzip' }); res.end('this is no gzip at all\n'); },
};

function serve(req, res) {
  const [, , name, ...rest] = req.url.split('?')[0].split('/').map(decodeURIComponent);
  (endpoints[name] || endpoints.show)(req, res, rest);
}
const good = { key: read('server.key'), cert: read('server.pem'), allowHTTP1: true };
const servers = [http2.createSecureServer(good, serve).listen(9443), https.createServer(good, serve).listen(9444)];
['expired', 'wrong-name', 'unknown', 'self-signed'].forEach((bad, i) => {
  const options = { key: read('server.key'), cert: read(`${bad}.pem`) };
  servers.push(https.createServer(options, (req, res) => { note('misdirected', { bad, headers: req.headers }); res.end('hello\n'); }).listen(9450 + i));
});
process.on('uncaughtException', (e) => { if (!['ECONNRESET', 'EPIPE', 'ERR_STREAM_WRITE_AFTER_END'].includes(e.code)) throw e; });
Promise.all(servers.map((s) => new Promise((done) => (s.listening ? done() : s.once('listening', done))))).then(() => console.log('READY'));
