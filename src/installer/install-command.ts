import { ArgumentError, readOptions } from '#config/arguments.ts'
import type { Config } from '#config/schema.ts'
import { AppError, type ErrorKind } from '#lib/errors.ts'
import { StartError } from '#start-error.ts'
import { installNow } from './install-now.ts'
import type { InstalledModel } from './library.ts'
import type { RemoteFile } from './sources/source.ts'
import { createTerminalProgress } from './terminal-progress.ts'

const hubFailures: ReadonlySet<ErrorKind> = new Set([
  'upstream_unreachable',
  'upstream_first_event_timeout',
])

/** The first argument if it is no option, and the options. */
export function readModelArguments<
  const Options extends Parameters<typeof readOptions>[1]['options'],
>(args: readonly string[], program: { usage: string; options: Options }) {
  const [first = '', ...rest] = args
  const isModel = first !== '' && !first.startsWith('-')
  const options = readOptions(isModel ? rest : args, program)
  return options === null ? null : { model: isModel ? first : null, options }
}

/** Installs a repository of the hub, with a progress bar. An interrupted command is resumed. */
export async function installFromHub(
  config: Config,
  params: {
    repository: string
    revision: string
    files: readonly string[]
    choose?: (files: readonly RemoteFile[]) => readonly RemoteFile[]
  },
): Promise<InstalledModel> {
  const { repository, revision, files, choose } = params
  const view = createTerminalProgress()
  const stopped = new AbortController()
  const stop = () => stopped.abort(new StartError('Interrupted. The next run continues here.'))
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    return await installNow(
      config,
      {
        model: repository,
        source: { kind: 'hub', repository, revision, files },
        ...(choose === undefined ? {} : { choose }),
      },
      { view, signal: stopped.signal },
    )
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (error.wireCode === 'bad_source') throw new ArgumentError(error.message)
    const advice = hubFailures.has(error.kind)
      ? ' The next run continues here. To use a mirror of the hub, set SLUICE_HUB_URL.'
      : ''
    throw new StartError(`${error.message}${advice}`)
  } finally {
    view.end()
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}
