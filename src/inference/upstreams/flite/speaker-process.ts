import { AppError } from '#lib/errors.ts'
import { roleCommand } from '#lib/own-program.ts'
import type { Log } from '#telemetry/log.ts'
import type { VoiceFiles } from './package.ts'
import type { FromChild, ToChild } from './wire.ts'

export type SpeakerOptions = {
  readonly files: VoiceFiles
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: Pick<Log, 'warn'>
}

/** A message without a reply for this long means that the process hangs. */
const replyMs = 60_000

/** A child process that speaks one text at a time. Killing it ends what it does. */
export class SpeakerProcess {
  readonly #child: Bun.Subprocess<'ignore', 'ignore', 'ignore'>
  readonly #log: SpeakerOptions['log']
  #reply: PromiseWithResolvers<Uint8Array> | null = null
  readonly loaded: Promise<unknown>

  constructor({ files, environment, log }: SpeakerOptions) {
    this.#log = log
    this.#child = Bun.spawn(roleCommand('speak-text'), {
      // Outside the project, so no developer configuration applies.
      cwd: '/',
      env: { ...environment },
      stdio: ['ignore', 'ignore', 'ignore'],
      // Audio is transferred as bytes.
      serialization: 'advanced',
      ipc: (message: FromChild) => this.#handleReply(message),
      onExit: () => this.#fail(processLost()),
    })
    this.loaded = this.send({ type: 'load', files })
    // There may be no caller that awaits it.
    this.loaded.catch(() => {})
  }

  get hasExited(): boolean {
    return this.#child.killed || this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** One message at a time; resolves with the audio of its reply. */
  async send(message: ToChild): Promise<Uint8Array> {
    if (this.hasExited) throw processLost()
    const reply = Promise.withResolvers<Uint8Array>()
    this.#reply = reply
    const timer = setTimeout(() => this.kill(), replyMs)
    this.#child.send(message)
    try {
      return await reply.promise
    } finally {
      clearTimeout(timer)
    }
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  async stop(): Promise<void> {
    this.kill()
    await this.#child.exited
  }

  #handleReply(message: FromChild): void {
    if (message.type !== 'failed') {
      this.#reply?.resolve(message.type === 'audio' ? message.bytes : new Uint8Array())
      return
    }
    this.#log.warn('speaking failed', { reason: message.detail })
    this.#fail(new AppError('upstream_refused', 'The local voice failed on this text.'))
  }

  #fail(error: AppError): void {
    this.#reply?.reject(error)
  }
}

function processLost(): AppError {
  return new AppError('upstream_error', 'The process of the local voice exited.')
}
