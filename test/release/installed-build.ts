import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type GatewayProcess, launchGateway, temporaryFolder } from '#test/support/process.ts'

/** What is released, made once per test run. */
export type Build = {
  readonly binary: string
  readonly packageFolder: string
  /** The folder of the program in the container image. */
  readonly imageFolder: string
}

const root = join(import.meta.dir, '../..')
/** The user and group of Debian without any right. */
const nobody = '65534'

/** Builds what the container image contains, with a fast compression. */
export async function makeBuild(): Promise<Build> {
  const out = publicFolder()
  const command = ['sh', join(buildContext(), 'deploy/image.sh'), out, '--compression', '1']
  const child = Bun.spawn(command, { stdio: ['ignore', 'ignore', 'pipe'] })
  const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`the build failed: ${stderr}`)
  return {
    binary: join(out, 'build/sluice'),
    packageFolder: join(out, 'build/npm'),
    imageFolder: join(out, 'image'),
  }
}

/** What a container build copies from the checkout, and the installed packages. */
function buildContext(): string {
  const context = temporaryFolder()
  for (const path of contextPaths()) {
    cpSync(join(root, path), join(context, path), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(context, 'node_modules'))
  return context
}

export function contextPaths(): string[] {
  const lines = readFileSync(join(root, '.dockerignore'), 'utf8').trim().split('\n')
  return lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
}

export type InstalledProgram = {
  /** Where the program is, which it cannot write to. */
  readonly folder: string
  /** Where it is started. */
  readonly cwd: string
  readonly home: string
  start(environment?: Record<string, string>): Promise<GatewayProcess>
  run(...args: string[]): Promise<{ stdout: string; stderr: string; code: number }>
}

/**
 * The binary or the bundle as on another machine: in a folder of its own that cannot be written to,
 * started in an empty directory with an empty home, by a user without rights if the tests run as root.
 */
export function install(
  form: 'binary' | 'bundle' | 'image',
  given: {
    build: Build
    withMp3?: boolean
    /** Absent: the embedded database, which takes seconds to create. */
    databaseUrl?: string | undefined
  },
): InstalledProgram {
  const { build, withMp3 = false, databaseUrl } = given
  const folder = publicFolder()
  const lib = join(folder, 'lib')
  if (form === 'binary') cpSync(build.binary, join(folder, 'sluice'))
  else if (form === 'image') cpSync(build.imageFolder, folder, { recursive: true })
  else cpSync(join(build.packageFolder, 'lib'), lib, { recursive: true })
  if (withMp3) {
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(
      join(root, 'node_modules/mpg123-decoder'),
      join(folder, 'node_modules/mpg123-decoder'),
    )
  }
  makeReadOnly(folder)
  const [cwd, home] = [publicFolder(0o777), publicFolder(0o777)]
  const program =
    form === 'bundle' ? [process.execPath, join(lib, 'main.js')] : [join(folder, 'sluice')]
  const command = [...asNobody(), ...program]
  const environment = {
    HOME: home,
    PATH: '/usr/bin:/bin',
    SLUICE_DATA: join(cwd, 'data'),
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
  }
  return {
    folder,
    cwd,
    home,
    async start(more = {}) {
      const gateway = await launchGateway({
        command,
        cwd,
        dataFolder: environment.SLUICE_DATA,
        environment: { ...environment, ...more },
      })
      await gateway.logged('listening', Number(more['SLUICE_WORKERS'] ?? 1))
      return gateway
    },
    async run(...args) {
      const child = Bun.spawn([...command, ...args], {
        cwd,
        env: environment,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const [stdout, stderr, code] = await Promise.all([
        child.stdout.text(),
        child.stderr.text(),
        child.exited,
      ])
      return { stdout, stderr, code }
    },
  }
}

/** Empty if the tests have no rights to drop, or that user cannot run Bun. */
function asNobody(): readonly string[] {
  const setpriv = Bun.which('setpriv')
  if (process.getuid?.() !== 0 || setpriv === null) return []
  const command = [setpriv, `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
  // Bun may be installed where only its user may start it, and it starts processes of its own.
  const startsItself = 'process.exit(Bun.spawnSync([process.execPath, "--version"]).exitCode)'
  const canRunBun = Bun.spawnSync([...command, process.execPath, '-e', startsItself]).success
  return canRunBun ? command : []
}

function publicFolder(mode = 0o755): string {
  const folder = temporaryFolder()
  chmodSync(folder, mode)
  return folder
}

function makeReadOnly(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) makeReadOnly(path)
    else if (entry.isFile()) chmodSync(path, 0o555)
  }
  chmodSync(folder, 0o555)
}
