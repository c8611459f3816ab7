import { availableParallelism } from 'node:os'
import { type Finding, fail, ok, skip, warn } from '#doctor/finding.ts'
import { descriptorsNeeded } from '#lib/descriptors.ts'
import { engines } from '#package.json'
import type { CheckGroup, CheckInputs } from './check.ts'

/** The machine and the Bun version. */
export const machine: CheckGroup = {
  name: 'machine',
  limitMs: () => 5_000,
  check: async ({ config }) => [
    bunFinding(),
    processorsFinding(config.workers),
    await descriptorsFinding(config),
  ],
}

export function bunFinding(version: string = Bun.version): Finding {
  if (Bun.semver.satisfies(version, engines.bun)) return ok('bun', `version ${version}`)
  return fail('bun', `version ${version}, ${engines.bun} is required`, 'Run "bun upgrade".')
}

function processorsFinding(workers: number): Finding {
  const processors = availableParallelism()
  const detail = `workers: ${workers}, processors: ${processors}`
  if (workers <= processors) return ok('workers', detail)
  return warn('workers', detail, `Set workers (SLUICE_WORKERS) to ${processors} at most.`)
}

async function descriptorsFinding(config: CheckInputs['config']): Promise<Finding> {
  const check = 'open files (ulimit -n)'
  const limits = await readDescriptorLimits()
  if (limits === null) return skip(check, 'the limit cannot be read')
  const needed = descriptorsNeeded(config)
  const [soft, hard] = [limits.soft, limits.hard].map((limit) =>
    Number.isFinite(limit) ? limit : 'unlimited',
  )
  const detail = `soft ${soft}, hard ${hard}; a full worker needs ${needed}`
  // Bun raises the soft limit to the hard limit at the start.
  if (limits.hard >= needed) return ok(check, detail)
  return warn(
    check,
    detail,
    `Raise the hard limit to ${needed} ("ulimit -n", or LimitNOFILE of the service), or lower limits.streams_max and speech.sessions_max; beyond the limit connections are refused.`,
  )
}

async function readDescriptorLimits(): Promise<{ soft: number; hard: number } | null> {
  try {
    const shell = Bun.spawn(['sh', '-c', 'ulimit -Sn; ulimit -Hn'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [soft, hard] = (await new Response(shell.stdout).text()).trim().split('\n').map(numberOf)
    return soft === undefined || hard === undefined ? null : { soft, hard }
  } catch {
    return null
  }
}

function numberOf(limit: string): number {
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit)
}
