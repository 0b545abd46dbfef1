// What an error of SQLite means, by its result code. Pure.

export function isSqliteError(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number';
}

/** SQLITE_BUSY: another connection has the file locked. */
export function isBusy(error: unknown): boolean {
  return isSqliteError(error) && (error.errcode & 0xff) === 5;
}

/** SQLITE_FULL: there was no room for a write, and SQLite has rolled the transaction back. */
export function isFull(error: unknown): boolean {
  return isSqliteError(error) && (error.errcode & 0xff) === 13;
}
