import { join } from 'node:path'
import { inheritedEnvironment, jwtSecret } from './process.ts'

const program = join(import.meta.dir, '../../src/main.ts')

/** Runs a command of the program on the data of a gateway; returns what it shows, what it says, and its exit code. */
export async function runGatewayCommand(
  args: readonly string[],
  { dataFolder, settings }: { dataFolder: string; settings: string },
): Promise<[stderr: string, stdout: string, code: number]> {
  const child = Bun.spawn([process.execPath, program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...inheritedEnvironment(),
      SLUICE_DATA: dataFolder,
      SLUICE_CONFIG: settings,
      JWT_SECRET: jwtSecret,
    },
  })
  const [stderr, stdout] = await Promise.all([child.stderr.text(), child.stdout.text()])
  return [stderr, stdout, await child.exited]
}
