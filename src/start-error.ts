import { messageOf } from '#lib/error-message.ts'

/** Why a command cannot do what it was asked for, in one sentence for the operator, without secrets. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

export function cannotListen(place: { host: string; port: number }, error: unknown): StartError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const reasons: Record<string, string> = {
    EADDRINUSE: 'it is in use by another process.',
    EACCES: 'permission denied.',
    EADDRNOTAVAIL: 'this machine does not have this address.',
  }
  const reason = reasons[String(code)] ?? messageOf(error)
  return new StartError(`Cannot listen on ${place.host}:${place.port}: ${reason}`, { cause: error })
}

/** What a verification after an installation found. */
export function doesNotWork(name: string, error: unknown, detail?: string): StartError {
  const more = detail === undefined ? '' : ` (${detail})`
  return new StartError(`${name} was installed but does not work: ${messageOf(error)}${more}`)
}
