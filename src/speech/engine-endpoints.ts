import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { instant, instantExample, nullable } from '#api/shapes.ts'
import type { Config } from '#config/schema.ts'
import { languages } from './engine.ts'
import { defaultModel } from './engines/local/model-files.ts'
import { installCommand } from './engines/local/package.ts'
import { configuredEngines, type EnginePool } from './engines/pool.ts'

const states = ['available', 'busy', 'failing', 'not_installed'] as const
const count = (description: string) => Type.Integer({ description, minimum: 0 })

const engineRecord = Type.Object(
  {
    object: Type.Literal('engine'),
    name: Type.String(),
    kind: Type.String({ description: 'Its protocol. `demo` recognises no words.' }),
    languages: Type.Array(Type.Union(languages.map((language) => Type.Literal(language)))),
    state: Type.Union(
      states.map((name) => Type.Literal(name)),
      {
        description:
          '`available`; `busy`: at its limit of sessions; `failing`: its last sessions failed, so it is used last for a while; `not_installed`: the built-in local model, before it is installed.',
      },
    ),
    sessions: count('Open sessions, live and of files.'),
    max_sessions: count('The limit of this worker.'),
    failures: count('Failed sessions since the worker started.'),
    install: nullable(
      Type.Object({
        command: Type.String({ description: 'What the operator runs on the machine.' }),
        model: Type.String({ description: 'The model of the hub that it installs.' }),
        megabytes: count('The size of the download.'),
      }),
      'How to install it; null: it is installed.',
    ),
    last_failure: nullable(
      Type.Object({
        kind: Type.String({ description: 'Such as `unreachable` or `broken`.' }),
        at: instant('When it failed'),
      }),
      'The last failure. The log has its cause.',
    ),
  },
  { $id: 'SpeechEngine' },
)

const engineList = Type.Object(
  {
    object: Type.Literal('list'),
    worker: Type.String({ description: 'The worker that responds, as in its metrics and log.' }),
    data: Type.Array(engineRecord),
  },
  { $id: 'SpeechEngineList' },
)

const example = {
  object: 'engine',
  name: 'nemotron',
  kind: 'openai-realtime',
  languages: ['cs', 'de', 'el', 'en', 'fr', 'sk'],
  state: 'available',
  sessions: 3,
  max_sessions: 100,
  failures: 1,
  install: null,
  last_failure: { kind: 'unreachable', at: instantExample },
} as const satisfies Static<typeof engineRecord>

const install = {
  command: installCommand,
  model: defaultModel.name,
  megabytes: defaultModel.megabytes,
}

type EngineEndpointDeps = {
  readonly pool: Pick<EnginePool, 'engines' | 'states'>
  readonly config: Pick<Config, 'engine'>
  readonly now: () => Date
}

/** What the worker that responds knows of the speech engines. */
export function engineEndpoints({ pool, config, now }: EngineEndpointDeps): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/engines',
      permission: 'can_manage_models',
      tag: 'Speech',
      summary: 'List the speech engines',
      description: `State and load of each engine, as the worker that responds knows them. An engine is only tried when a
session needs it. Without any engine in the configuration, a local model answers if it is installed, else the built-in demo.`,
      responses: {
        200: {
          description: 'The engines, in the order of preference.',
          content: json(engineList, { object: 'list', worker: '4711', data: [example] }),
        },
      },
      handle() {
        const kinds = new Map(
          configuredEngines(config.engine).map(({ name, kind }) => [name, kind]),
        )
        const data = pool.states().map(
          (state, index): Static<typeof engineRecord> => ({
            object: 'engine',
            name: state.name,
            kind: kinds.get(state.name) ?? 'demo',
            languages: [...(pool.engines[index]?.languages ?? [])],
            state: stateOf(state),
            sessions: state.sessions,
            max_sessions: state.sessionsMax,
            failures: state.failuresTotal,
            install: state.isAvailable ? null : install,
            last_failure: state.lastFailure && {
              kind: state.lastFailure.kind,
              at: new Date(
                now().getTime() - performance.now() + state.lastFailure.atMs,
              ).toISOString(),
            },
          }),
        )
        // A demo that is not needed is none of the engines.
        const used = data.filter(({ kind, install }) => kind !== 'demo' || install === null)
        return { object: 'list', worker: String(process.pid), data: used }
      },
    }),
  ]
}

function stateOf(state: ReturnType<EnginePool['states']>[number]): (typeof states)[number] {
  if (!state.isAvailable) return 'not_installed'
  if (state.isInBackoff) return 'failing'
  return state.sessions >= state.sessionsMax ? 'busy' : 'available'
}
