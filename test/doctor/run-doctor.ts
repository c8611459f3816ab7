import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '#doctor/finding.ts'
import type { Report } from '#doctor/report.ts'
import { inheritedEnvironment, temporaryFolder } from '#test/support/process.ts'

/** `bun run doctor` as a process in a temporary folder. */
export type DoctorRun = {
  readonly exitCode: number
  readonly report: Report
  /** The printed output. */
  readonly stdout: string
  readonly stderr: string
  /** The only finding of a check; throws if there is none, or more. */
  finding(check: string): Finding
  /** `fail database`, for each finding that is neither ok nor skipped. */
  readonly complaints: readonly string[]
}

export type DoctorOptions = {
  environment?: Readonly<Record<string, string>>
  /** The text of the configuration file. */
  toml?: string
  dataFolder?: string
}

const program = join(import.meta.dir, '../../src/main.ts')
const jwtSecret = 'a-secret-for-tests-of-at-least-32-characters'

export async function runDoctor(options: DoctorOptions = {}): Promise<DoctorRun> {
  const { exitCode, stdout, stderr } = await runProgram(['--json'], options)
  const { findings, ...summary } = JSON.parse(stdout)
  const report: Report = {
    ...summary,
    findings: findings.map(({ told, ...finding }: { told: string }) => ({
      ...finding,
      detail: told,
    })),
  }
  return {
    exitCode,
    report,
    stdout,
    stderr,
    finding(check) {
      const [found, ...more] = report.findings.filter((one) => one.check === check)
      if (found === undefined || more.length > 0) throw new Error(`not one "${check}": ${stdout}`)
      return found
    },
    complaints: report.findings
      .filter(({ verdict }) => verdict === 'fail' || verdict === 'warn')
      .map(({ verdict, check }) => `${verdict} ${check}`),
  }
}

export async function runProgram(args: readonly string[], options: DoctorOptions = {}) {
  const cwd = temporaryFolder()
  if (options.toml !== undefined) writeFileSync(join(cwd, 'sluice.toml'), options.toml)
  const child = Bun.spawn([process.execPath, program, 'doctor', ...args], {
    cwd,
    env: {
      ...inheritedEnvironment(),
      JWT_SECRET: jwtSecret,
      PORT: '0',
      SLUICE_DATA: options.dataFolder ?? join(cwd, 'data'),
      ...options.environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr, exitCode }
}
