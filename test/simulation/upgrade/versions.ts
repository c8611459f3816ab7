import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/** The checkout that this file belongs to. */
export const thisVersion = join(import.meta.dir, '../../..')

/** What a start needs. */
const parts = ['src', 'db', 'docs', 'package.json', 'bun.lock', 'bunfig.toml', 'tsconfig.json']

/**
 * A copy of this version with one more migration, as the next version of the same minor version may
 * have it: it changes tables that every request writes.
 */
export function makeNextVersion(folder: string): string {
  for (const part of parts) cpSync(join(thisVersion, part), join(folder, part), { recursive: true })
  for (const part of readdirSync(thisVersion)) {
    if (!existsSync(join(folder, part))) symlinkSync(join(thisVersion, part), join(folder, part))
  }
  const migrations = join(folder, 'db/migrations')
  const journalPath = join(migrations, 'meta/_journal.json')
  const journal = JSON.parse(readFileSync(journalPath, 'utf8'))
  const last = journal.entries.at(-1)
  const tag = `${String(last.idx + 1).padStart(4, '0')}_next_version`
  journal.entries.push({ ...last, idx: last.idx + 1, when: last.when + 1_000, tag })
  writeFileSync(journalPath, JSON.stringify(journal))
  const statements = [
    'ALTER TABLE "response" ADD COLUMN "next_note" text;',
    'ALTER TABLE "usage_record" ADD COLUMN "next_count" integer DEFAULT 0 NOT NULL;',
    'ALTER TABLE "api_key" ADD COLUMN "next_flag" boolean DEFAULT false NOT NULL;',
    'CREATE TABLE "next_table" ("id" uuid PRIMARY KEY NOT NULL);',
    'CREATE INDEX "response_next_note" ON "response" USING btree ("next_note");',
  ]
  writeFileSync(join(migrations, `${tag}.sql`), statements.join('--> statement-breakpoint\n'))
  return folder
}

/** A git revision with its packages, which are installed if its lockfile is another one. */
export async function checkOut(revision: string, folder: string): Promise<string> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await run(['sh', '-c', `git archive ${revision} | tar -x -C "$0"`, folder], thisVersion)
  const lockOf = (project: string) => readFileSync(join(project, 'bun.lock'), 'utf8')
  if (lockOf(folder) === lockOf(thisVersion)) {
    symlinkSync(join(thisVersion, 'node_modules'), join(folder, 'node_modules'))
  } else {
    await run([process.execPath, 'install', '--frozen-lockfile', '--silent'], folder)
  }
  return folder
}

async function run(command: string[], cwd: string): Promise<void> {
  const child = Bun.spawn(command, { cwd, stdio: ['ignore', 'ignore', 'pipe'] })
  const errors = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}: ${errors}`)
}
