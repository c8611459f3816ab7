/** Why the database cannot be used, in one sentence for the operator. No secret in it. */
export class DatabaseStartError extends Error {
  override readonly name = 'DatabaseStartError'
}
