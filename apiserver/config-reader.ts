// Reads the server's own configuration files (apiserver.config.k8s.io) strictly: YAML or JSON, each field with its type, none that
// is not known. Which values are allowed is the caller's part.

import { parseDocument } from 'yaml';
import { getOwn } from '../lib/own-property.ts';

/** Why a file is no configuration. */
export class ConfigurationError extends Error {
  override name = 'ConfigurationError';
}

/** An object of the file. Fields are read by name; `end` throws where there are others. */
export class ConfigReader {
  readonly #value: Readonly<Record<string, unknown>>;
  /** "jwt[0].issuer"; '' for the file. */
  readonly #at: string;
  readonly #known = new Set<string>();

  constructor(value: unknown, at: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new ConfigurationError(`${at === '' ? 'the file' : at}: expected an object`);
    }
    this.#value = { ...value };
    this.#at = at;
  }

  /** '' for an absent one. */
  text(name: string): string {
    return this.optionalText(name) ?? '';
  }

  optionalText(name: string): string | undefined {
    const value = this.#read(name);
    if (value === undefined || typeof value === 'string') return value;
    throw this.#expected(name, 'a string');
  }

  /** Undefined for an absent one. */
  truth(name: string): boolean | undefined {
    const value = this.#read(name);
    if (value === undefined || typeof value === 'boolean') return value;
    throw this.#expected(name, 'true or false');
  }

  texts(name: string): readonly string[] {
    return this.#list(name).map((one) => {
      if (typeof one === 'string') return one;
      throw this.#expected(name, 'strings');
    });
  }

  /** Each object of a list. */
  objects<T>(name: string, read: (reader: ConfigReader) => T): readonly T[] {
    return this.#list(name).map((one, index) => complete(new ConfigReader(one, `${this.#path(name)}[${index}]`), read));
  }

  /** Undefined for an absent one. */
  object<T>(name: string, read: (reader: ConfigReader) => T): T | undefined {
    const value = this.#read(name);
    return value === undefined ? undefined : complete(new ConfigReader(value, this.#path(name)), read);
  }

  /** Throws for a field that nothing has read. */
  end(): void {
    const unknown = Object.keys(this.#value).find((name) => !this.#known.has(name));
    if (unknown !== undefined) {
      throw new ConfigurationError(`strict decoding error: unknown field ${JSON.stringify(this.#path(unknown))}`);
    }
  }

  #list(name: string): readonly unknown[] {
    const value = this.#read(name) ?? [];
    if (Array.isArray(value)) return value;
    throw this.#expected(name, 'a list');
  }

  /** Null is as good as absent. */
  #read(name: string): unknown {
    this.#known.add(name);
    return getOwn(this.#value, name) ?? undefined;
  }

  #path(name: string): string {
    return this.#at === '' ? name : `${this.#at}.${name}`;
  }

  #expected(name: string, what: string): ConfigurationError {
    return new ConfigurationError(`${this.#path(name)}: expected ${what}`);
  }
}

function complete<T>(reader: ConfigReader, read: (reader: ConfigReader) => T): T {
  const result = read(reader);
  reader.end();
  return result;
}

/** A document of the kind, in one of the versions of apiserver.config.k8s.io. Throws ConfigurationError. */
export function readConfiguration<T>(
  text: string,
  kind: string,
  versions: readonly string[],
  read: (reader: ConfigReader) => T,
): T {
  if (text === '') throw new ConfigurationError('empty config data');
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new ConfigurationError(error.message.split('\n')[0] ?? '');
  return complete(new ConfigReader(document.toJS({ maxAliasCount: 100 }), ''), (reader) => {
    const [found, apiVersion] = [reader.text('kind'), reader.text('apiVersion')];
    if (found !== kind || !versions.some((version) => apiVersion === `apiserver.config.k8s.io/${version}`)) {
      const [shown, version] = [JSON.stringify(found), JSON.stringify(apiVersion)];
      throw new ConfigurationError(`no kind ${shown} is registered for version ${version}: expected ${kind}`);
    }
    return read(reader);
  });
}
