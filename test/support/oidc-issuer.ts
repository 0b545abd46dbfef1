// An OpenID Connect issuer on a test server: its discovery document, its keys, and tokens that it signs.

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { json, type TestServer } from './https-server.ts';

const notFound: TestServer['handler'] = (_request, response) => void response.writeHead(404).end();

export interface SigningKey {
  readonly id: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export const signingKey = (id: string): SigningKey => ({ id, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) });

/** What the issuer is and answers; several may be behind one server, by their realms. */
export class TestIssuer {
  readonly server: TestServer;
  keys: readonly SigningKey[] = [];
  cacheControl = 'no-cache';
  isUp = true;
  /** Of which the discovery document is. */
  readonly realm: string;

  /** What it calls itself: its URL, unless another is set. */
  issuerName: string;

  constructor(server: TestServer, realm = 'realm', others: TestServer['handler'] = notFound) {
    this.server = server;
    this.realm = realm;
    this.issuerName = this.url;
    server.handler = (request, response) => {
      const { url } = request;
      if (!this.isUp) response.writeHead(503).end('closed');
      else if (url.pathname === this.discoveryPath)
        json(response, 200, { issuer: this.issuerName, jwks_uri: `${server.url}${this.keysPath}` });
      else if (url.pathname === this.keysPath) {
        const keys = this.keys.map(({ id, publicKey }) => ({
          ...publicKey.export({ format: 'jwk' }),
          kid: id,
          use: 'sig',
        }));
        json(response, 200, { keys }, { 'cache-control': this.cacheControl });
      } else void others(request, response);
    };
  }

  get url(): string {
    return `${this.server.url}/${this.realm}`;
  }

  get discoveryPath(): string {
    return `/${this.realm}/.well-known/openid-configuration`;
  }

  get keysPath(): string {
    return `/${this.realm}/keys`;
  }

  requests(path: string): number {
    return this.server.requests.filter(({ url }) => url.pathname === path).length;
  }

  token(key: SigningKey, claims: object = {}): string {
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.issuerName, aud: 'kubernetes', sub: 'jane', exp: now + 600, ...claims };
    const text = `${encode({ alg: 'RS256', kid: key.id })}.${encode(all)}`;
    return `${text}.${sign('sha256', Buffer.from(text), key.privateKey).toString('base64url')}`;
  }
}
