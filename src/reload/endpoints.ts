import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { actorOf } from '#audit/audit.ts'
import { type ConfigKey, listConfigKeys } from '#config/key-list.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { type ReloadReport, workerStates } from './messages.ts'
import type { Reloads } from './worker-reloads.ts'

/** Faults in an error message; the log has all of them. */
const faultsShownMax = 20

/** Reading the configuration file again. */
export function reloadEndpoints({
  config,
  reloads,
}: {
  config: Config
  reloads: Reloads
}): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/config/file',
      permission: 'can_edit_config',
      tag: 'Configuration',
      summary: 'List the keys of the configuration file',
      description: `Every key with its value in this process, without secrets, where the value comes from, and whether a
change needs a restart. Changes of \`PATCH /v1/config\` are not included.`,
      responses: {
        200: { description: 'The keys.', content: json(fileList, fileExample) },
      },
      handle: () => ({ object: 'list' as const, data: listConfigKeys(config).map(renderKey) }),
    }),

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

function renderKey({ source, isSecret, reloads, ...key }: ConfigKey): Static<typeof fileKey> {
  return {
    ...key,
    source: source?.kind ?? 'default',
    variable: source?.kind === 'environment' ? source.variable : null,
    secret: isSecret,
    restart_required: !reloads,
  }
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

const fileKey = Type.Object(
  {
    key: Type.String({ description: 'As in the file: `retrieval.k`.' }),
    description: Type.String(),
    value: anyValue('Without secrets; null: absent.'),
    default: anyValue('The built-in value; null: none.'),
    source: Type.Union(
      [Type.Literal('default'), Type.Literal('file'), Type.Literal('environment')],
      { description: 'Where the value comes from.' },
    ),
    variable: Type.Union([Type.String(), Type.Null()], {
      description: 'The environment variable that sets it.',
    }),
    secret: Type.Boolean({ description: 'The value is never shown.' }),
    restart_required: Type.Boolean({ description: 'Otherwise a reload of the file changes it.' }),
  },
  { $id: 'ConfigFileKey', description: 'A key of the configuration file.' },
)
const fileList = Type.Object({ object: Type.Literal('list'), data: Type.Array(fileKey) })
const fileExample = {
  object: 'list',
  data: [
    {
      key: 'retrieval.k',
      description: 'Passages passed to the model.',
      value: 4,
      default: 3,
      source: 'file',
      variable: null,
      secret: false,
      restart_required: false,
    },
  ],
} as const

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
