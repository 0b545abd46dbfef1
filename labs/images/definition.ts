// Parses an image definition file (labs/images/*.yaml) and checks it field by field. Pure: text in, ImageDefinition out.

import { parse } from 'yaml';
import { UserError } from '../../lib/errors.ts';

export interface PackageSpec {
  readonly name: string;
  /** Path prefixes to take; undefined takes everything but documentation. */
  readonly take?: readonly string[];
}

export interface FileSpec {
  readonly path: string;
  readonly content: string;
  readonly mode: number;
  readonly user: string;
}

export interface DirectorySpec {
  readonly path: string;
  readonly mode: number;
  readonly user: string;
}

export interface UserSpec {
  readonly name: string;
  /** Also the gid of the group of the same name. */
  readonly id: number;
  readonly home: string;
}

export interface ImageDefinition {
  /** Full names: registry, repository and tag. The first is the image's own, the rest are aliases. */
  readonly names: readonly string[];
  readonly packages: readonly PackageSpec[];
  readonly directories: readonly DirectorySpec[];
  readonly files: readonly FileSpec[];
  /** Symbolic links: path → target. */
  readonly links: Readonly<Record<string, string>>;
  readonly users: readonly UserSpec[];
  /** A multi-call binary whose every applet becomes a link in /bin, unless the name is taken. */
  readonly applets?: string;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** "80/tcp" */
  readonly exposedPorts: readonly string[];
  readonly workingDir: string;
  readonly user: string;
  readonly stopSignal?: string;
}

const FIELDS = [
  'names',
  'packages',
  'directories',
  'files',
  'links',
  'users',
  'applets',
  'entrypoint',
  'cmd',
  'env',
  'exposedPorts',
  'workingDir',
  'user',
  'stopSignal',
];

/** Reads values by path; errors name the file and the field. */
class Reader {
  readonly #file: string;
  constructor(file: string) {
    this.#file = file;
  }
  fail(field: string, problem: string): never {
    throw new UserError(`${this.#file}: ${field}: ${problem}`);
  }
  map(value: unknown, field: string): Readonly<Record<string, unknown>> {
    if (value === undefined || value === null) return {};
    if (typeof value !== 'object' || Array.isArray(value)) this.fail(field, 'must be a map');
    return Object.fromEntries(Object.entries(value));
  }
  list(value: unknown, field: string): readonly unknown[] {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) this.fail(field, 'must be a list');
    return value;
  }
  text(value: unknown, field: string, fallback?: string): string {
    if (value === undefined && fallback !== undefined) return fallback;
    if (typeof value !== 'string') this.fail(field, 'must be a string');
    return value;
  }
  path(value: unknown, field: string): string {
    const path = this.text(value, field);
    if (!path.startsWith('/') || path.includes('/../') || path.endsWith('/')) {
      this.fail(field, 'must be an absolute path without a slash at its end');
    }
    return path;
  }
  /** YAML 1.2 knows 0o755; a bare 0755 is the number 755, never intended: modes are strings. */
  mode(value: unknown, field: string, fallback: number): number {
    if (value === undefined) return fallback;
    const text = this.text(value, field);
    if (!/^[0-7]{3,4}$/.test(text)) this.fail(field, 'must be an octal mode in quotes, such as "0755"');
    return Number.parseInt(text, 8);
  }
  texts(value: unknown, field: string): readonly string[] {
    return this.list(value, field).map((item, index) => this.text(item, `${field}[${index}]`));
  }
  textMap(value: unknown, field: string): Readonly<Record<string, string>> {
    const entries = Object.entries(this.map(value, field));
    return Object.fromEntries(entries.map(([key, item]) => [key, this.text(item, `${field}.${key}`)]));
  }
  only(map: Readonly<Record<string, unknown>>, field: string, known: readonly string[]): void {
    const unknown = Object.keys(map).find((key) => !known.includes(key));
    if (unknown !== undefined) {
      this.fail(field === '' ? unknown : `${field}.${unknown}`, `unknown field; there are ${known.join(', ')}`);
    }
  }
}

/** Rejects with UserError that names the file and the field. */
export function parseImageDefinition(text: string, file: string): ImageDefinition {
  const read = new Reader(file);
  const top = read.map(parse(text), 'the file');
  read.only(top, '', FIELDS);
  const names = read.texts(top['names'], 'names');
  if (names.length === 0) read.fail('names', 'needs at least one name');
  for (const [index, name] of names.entries()) {
    if (!/^[a-z0-9.-]+\.[a-z]+(:\d+)?\/[a-z0-9._/-]+:[\w.-]+$/.test(name)) {
      read.fail(`names[${index}]`, `"${name}" must be a full name with registry and tag: docker.io/library/web:stable`);
    }
  }
  return {
    names,
    packages: read
      .list(top['packages'], 'packages')
      .map((item, index) => packageSpec(read, item, `packages[${index}]`)),
    directories: read.list(top['directories'], 'directories').map((item, index) => {
      const field = `directories[${index}]`;
      if (typeof item === 'string') return { path: read.path(item, field), mode: 0o755, user: 'root' };
      const map = read.map(item, field);
      read.only(map, field, ['path', 'mode', 'user']);
      return {
        path: read.path(map['path'], `${field}.path`),
        mode: read.mode(map['mode'], `${field}.mode`, 0o755),
        user: read.text(map['user'], `${field}.user`, 'root'),
      };
    }),
    files: read.list(top['files'], 'files').map((item, index) => {
      const field = `files[${index}]`;
      const map = read.map(item, field);
      read.only(map, field, ['path', 'content', 'mode', 'user']);
      return {
        path: read.path(map['path'], `${field}.path`),
        content: read.text(map['content'], `${field}.content`),
        mode: read.mode(map['mode'], `${field}.mode`, 0o644),
        user: read.text(map['user'], `${field}.user`, 'root'),
      };
    }),
    links: read.textMap(top['links'], 'links'),
    users: read.list(top['users'], 'users').map((item, index) => {
      const field = `users[${index}]`;
      const map = read.map(item, field);
      read.only(map, field, ['name', 'id', 'home']);
      const id = map['id'];
      if (typeof id !== 'number' || !Number.isInteger(id) || id < 0) return read.fail(`${field}.id`, 'must be a uid');
      return {
        name: read.text(map['name'], `${field}.name`),
        id,
        home: read.text(map['home'], `${field}.home`, '/nonexistent'),
      };
    }),
    ...(top['applets'] === undefined ? {} : { applets: read.path(top['applets'], 'applets') }),
    entrypoint: read.texts(top['entrypoint'], 'entrypoint'),
    cmd: read.texts(top['cmd'], 'cmd'),
    env: read.textMap(top['env'], 'env'),
    exposedPorts: read.texts(top['exposedPorts'], 'exposedPorts'),
    workingDir: read.text(top['workingDir'], 'workingDir', '/'),
    user: read.text(top['user'], 'user', ''),
    ...(top['stopSignal'] === undefined ? {} : { stopSignal: read.text(top['stopSignal'], 'stopSignal') }),
  };
}

function packageSpec(read: Reader, item: unknown, field: string): PackageSpec {
  if (typeof item === 'string') return { name: item };
  const map = read.map(item, field);
  read.only(map, field, ['name', 'take']);
  const name = read.text(map['name'], `${field}.name`);
  return map['take'] === undefined ? { name } : { name, take: read.texts(map['take'], `${field}.take`) };
}
