import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { actorOf } from '#audit/audit.ts'
import { AppError } from '#lib/errors.ts'
import { type ReloadReport, workerStates } from './messages.ts'
import type { Reloads } from './worker-reloads.ts'

/** Faults in an error message; the log has all of them. */
const faultsShownMax = 20

/** Reading the configuration file again. */
export function reloadEndpoints({ reloads }: { reloads: Reloads }): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/config/reload',
      permission: 'can_edit_config',
      tag: 'Configuration',
      summary: 'Reload the configuration file',
      description: `Every worker of the machine that responds changes to the file without a restart;
requests in progress continue as they began. A file that is not valid changes nothing. Other machines
reload their own files. Settings of \`PATCH /v1/config\` stay above those of the file.`,
      responses: {
        200: { description: 'What has changed.', content: json(reloadRecord, example) },
      },
      errors: {
        unprocessable: {
          code: 'invalid_config',
          message:
            'The configuration file is not valid, and nothing has changed: upstream.0.urll: unknown key; did you mean url?',
        },
        draining: 'The server is shutting down.',
      },
      handle: async ({ context }) => render(await reloads.reload(actorOf(context))),
    }),
  ]
}

function render(report: ReloadReport): Static<typeof reloadRecord> {
  if (report.outcome === 'stopping') {
    throw new AppError('draining', 'The server is shutting down.')
  }
  if (report.outcome === 'invalid') throw invalid(report.faults)
  const { file, changed, needsRestart, workers } = report
  return {
    object: 'config.reload',
    file,
    changed: [...changed],
    needs_restart: [...needsRestart],
    workers: workers.map(({ pid, state, fault }) => ({ worker: String(pid), state, error: fault })),
  }
}

function invalid(faults: readonly string[]): AppError {
  const shown = faults.slice(0, faultsShownMax)
  const rest = faults.length - shown.length
  const list = [...shown, ...(rest > 0 ? [`${rest} more.`] : [])].join(' ')
  const message = `The configuration file is not valid, and nothing has changed: ${list}`
  return new AppError('unprocessable', message, { code: 'invalid_config' })
}

const anyValue = (description: string) => Type.Unknown({ description })

const reloadRecord = Type.Object(
  {
    object: Type.Literal('config.reload'),
    file: Type.Union([Type.String(), Type.Null()], {
      description: 'The path of the file; null: there is none.',
    }),
    changed: Type.Array(
      Type.Object({
        key: Type.String({ description: 'As in the file; entries of a list by their names.' }),
        before: anyValue('Without secrets; null: absent.'),
        after: anyValue('Without secrets; null: absent.'),
      }),
      { description: 'Keys that have new values now.' },
    ),
    needs_restart: Type.Array(Type.String(), {
      description:
        'Keys whose new values take effect with a restart; until then they keep the old ones.',
    }),
    workers: Type.Array(
      Type.Object({
        worker: Type.String({ description: 'The process id.' }),
        state: Type.Union(
          workerStates.map((state) => Type.Literal(state)),
          {
            description:
              '`starting`: it will follow before it serves; `unresponsive`: it has not confirmed yet.',
          },
        ),
        error: Type.Union([Type.String(), Type.Null()]),
      }),
    ),
  },
  { $id: 'ConfigReload' },
)

const example = {
  object: 'config.reload',
  file: '/etc/sluice/sluice.toml',
  changed: [
    { key: 'upstream.gpu-1.url', before: 'http://10.0.0.5/v1', after: 'http://10.0.0.6/v1' },
  ],
  needs_restart: ['port'],
  workers: [
    { worker: '4711', state: 'reloaded', error: null },
    { worker: '4712', state: 'reloaded', error: null },
  ],
} as const
