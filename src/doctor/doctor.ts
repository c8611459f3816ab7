import { clock } from '#clock.ts'
import { readOptions } from '#config/arguments.ts'
import { ConfigError, loadConfigFromProcess, programEnvironment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { secretsOf } from '#config/secrets.ts'
import { createTransport } from '#inference/transport/create-transport.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { commandLine } from '#lib/own-program.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import { modules } from '#modules.ts'
import { engineFaults } from '#speech/engines/registry.ts'
import { createLog } from '#telemetry/log.ts'
import type { CheckGroup, CheckInputs } from './check.ts'
import { database } from './database.ts'
import { type Finding, fail, ok } from './finding.ts'
import { folders } from './folders.ts'
import { reasonOf } from './format.ts'
import { listening } from './listening.ts'
import { bunFinding, machine } from './machine.ts'
import { type Report, renderJson, renderReport, reportOf } from './report.ts'

const transportLimits = {
  idleMs: 1,
  idleSocketsPerOriginMax: 1,
  headerBytesMax: 65_536,
  bufferBytesMax: 262_144,
}

const usage = `
Usage: ${commandLine('doctor')} [--json]

Checks that every dependency is reachable and configured, and says what to do about each problem.
The exit code is 1 if a check fails. --json prints the result as an object.`

/** In the order of the report. */
const groups: readonly CheckGroup[] = [
  machine,
  listening,
  folders,
  database,
  ...modules.flatMap(({ doctor }) => doctor ?? []),
]

/** The command `doctor`: checks that every dependency is reachable and configured. */
export async function examineMachine(args: readonly string[]): Promise<number> {
  const options = readOptions(args, {
    usage,
    options: { json: { type: 'boolean', default: false } },
  })
  if (options === null) return 0
  const report = await diagnose()
  process.stdout.write(options.json ? renderJson(report) : renderReport(report))
  return report.ok ? 0 : 1
}

async function diagnose(): Promise<Report> {
  try {
    const config = loadConfigFromProcess([upstreamFaults, engineFaults])
    const findings = [ok('configuration', 'every key is valid'), ...(await runChecks(config))]
    return reportOf(findings, secretsOf(config))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    // The other checks need a configuration.
    return reportOf([bunFinding(), ...error.faults.map(faultFinding)], [])
  }
}

function faultFinding(fault: string): Finding {
  return fail(
    'configuration',
    fault,
    `Correct this key; "${commandLine('config')}" prints the effective configuration.`,
  )
}

async function runChecks(config: Config): Promise<readonly Finding[]> {
  const log = createLog({ level: 'error', format: 'text', write: () => {}, now: clock.now })
  const transport = createTransport(config.transport, {
    fetch,
    connectMs: () => config.deadlines.connectMs,
    ...transportLimits,
  })
  try {
    return await examine({
      config,
      transport,
      fetch,
      log,
      now: clock.now,
      environment: programEnvironment(),
    })
  } finally {
    transport.close()
  }
}

/** Runs all checks concurrently. A failing check becomes a finding. */
async function examine(inputs: CheckInputs): Promise<readonly Finding[]> {
  const found = await Promise.all(groups.map((group) => runGroup(group, inputs)))
  return found.flat()
}

async function runGroup(group: CheckGroup, inputs: CheckInputs): Promise<readonly Finding[]> {
  const limitMs = group.limitMs(inputs)
  const stop = new AbortController()
  try {
    return await withTimeLimit(group.check(inputs, stop.signal), limitMs, () => {
      return new Error(`no result within ${limitMs} ms`)
    })
  } catch (error) {
    return [
      fail(
        group.name,
        reasonOf(error),
        'Check whether this machine or the checked service is overloaded.',
      ),
    ]
  } finally {
    stop.abort()
  }
}
