import type { EngineConfig } from '#config/schema.ts'
import type { CheckGroup, CheckInputs } from '#doctor/check.ts'
import { type Finding, fail, ok, skip } from '#doctor/finding.ts'
import { placeOf, reasonOf } from '#doctor/format.ts'
import { isRecord } from '#lib/json.ts'
import { builtInLocal, loadMs } from '#speech/engines/local/engine.ts'
import { findInstalled } from '#speech/engines/local/installed.ts'
import { installCommand, speechFolders } from '#speech/engines/local/package.ts'
import { createEngine, engineKind } from '#speech/engines/registry.ts'

/** In addition to the time until an engine is ready. */
const slackMs = 5_000
const endpointingMs = 500

/** Opens a session without audio on each speech engine. */
export const engines: CheckGroup = {
  name: 'speech engines',
  limitMs: ({ config }) => Math.max(...enginesOf(config).map(readyMsMax)) + slackMs,
  async check(inputs, signal) {
    if (inputs.config.engine.length === 0) {
      const { runtime, model } = findInstalled({}, speechFolders(inputs.config))
      if (runtime !== null && model !== null) {
        return [await tryEngine(inputs, builtInLocal, signal)]
      }
      const hint = `none configured; the built-in demo recognises no words. Install a local model with: ${installCommand}`
      return [skip('speech engines', hint)]
    }
    return Promise.all(inputs.config.engine.map((config) => tryEngine(inputs, config, signal)))
  },
}

function enginesOf({ engine }: CheckInputs['config']): readonly EngineConfig[] {
  return engine.length === 0 ? [builtInLocal] : engine
}

/** A session on this machine may wait for its model to be loaded. */
function readyMsMax({ kind, openMs }: EngineConfig): number {
  return kind === builtInLocal.kind ? Math.max(openMs, loadMs) : openMs
}

async function tryEngine(
  inputs: CheckInputs,
  config: EngineConfig,
  signal: AbortSignal,
): Promise<Finding> {
  const check = `speech engine "${config.name}"`
  const { environment, log } = inputs
  const isProgramEngine = engineKind(config.kind).location === 'command'
  const program = isProgramEngine ? (config.command[0] ?? '') : null
  if (program !== null && !isProgram(program, environment['PATH'])) {
    return fail(
      check,
      `no such program: "${program}"`,
      'Install it, or correct the command; relative paths start in the working directory of the server.',
    )
  }
  // One session needs no program that waits for the next. A built-in engine is known by its identity.
  const engine = createEngine(config.warm === 0 ? config : { ...config, warm: 0 }, {
    log,
    environment,
    fetch: inputs.fetch,
    folders: speechFolders(inputs.config),
  })
  // An installed model may recognise fewer languages than its kind.
  const languages = engine.languages.filter((code) => engine.available?.(code) !== false)
  const [language = 'en'] = languages
  try {
    const session = await engine.open({
      language,
      vocabulary: [],
      endpointingMs,
      signal,
      listener: () => {},
    })
    session.abort()
    return ok(check, `${placeName(config)} is ready for ${languages.join(', ')}`)
  } catch (error) {
    return fail(check, `${placeName(config)}: ${reasonOf(error)}`, adviceFor(config, error))
  } finally {
    await engine.close()
  }
}

function isProgram(program: string, path: string | undefined): boolean {
  return Bun.which(program, path === undefined ? {} : { PATH: path }) !== null
}

function placeName({ kind, url, command }: EngineConfig): string {
  if (engineKind(kind).location === 'command') return `the program ${command[0]}`
  return url === undefined ? `the engine of kind ${kind}` : placeOf(url)
}

function adviceFor({ kind, openMs }: EngineConfig, error: unknown): string {
  if (engineKind(kind).location === 'command') {
    return `Run its command by hand: it has to print that it is ready within ${openMs} ms (open_ms).`
  }
  const isRefusal = isRecord(error) && error['kind'] === 'refused'
  return isRefusal
    ? 'Check its key, model and languages.'
    : 'Start it, open the way to it, or correct its url.'
}
