/** Why the database cannot be started, in one sentence for the operator, without secrets. */
export class DatabaseStartError extends Error {
  override readonly name = 'DatabaseStartError'
}
