import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nonAdditiveStatements } from '#test/support/additive-migrations.ts'

const folder = join(import.meta.dir, '../../db/migrations')

/** The newest migration of the first version that a later one may be rolled back to. */
const baseline = '0019'

test('migrations within a minor version only add, so that the previous version runs on them', () => {
  const later = readdirSync(folder).filter(
    (name) => name.endsWith('.sql') && name > `${baseline}_~`,
  )
  expect(later.length).toBeGreaterThan(0)
  const found = later.map((name) => [
    name,
    nonAdditiveStatements(readFileSync(join(folder, name), 'utf8')),
  ])
  expect(found).toEqual(later.map((name) => [name, []]))
})

test.each([
  'CREATE TABLE "new" ("id" uuid PRIMARY KEY NOT NULL, "name" text NOT NULL);',
  'CREATE INDEX "response_new" ON "response" USING btree ("id");',
  'ALTER TABLE "response" ADD COLUMN "note" text;',
  'ALTER TABLE "response" ADD COLUMN "count" integer DEFAULT 0 NOT NULL;',
  'CREATE TABLE "new" ("id" uuid);--> statement-breakpoint\nALTER TABLE "new" ADD CONSTRAINT "fk" FOREIGN KEY ("id") REFERENCES "file"("id");',
  'CREATE TABLE "new" ("id" uuid);--> statement-breakpoint\nCREATE UNIQUE INDEX "new_id" ON "new" ("id");',
  '-- a reason\nCREATE FUNCTION f() RETURNS integer LANGUAGE sql AS $$ select 1 $$;',
  'UPDATE "schema_level" SET level = 2;--> statement-breakpoint\nDROP TABLE "response";',
])('additive: %s', (migration) => {
  expect(nonAdditiveStatements(migration)).toEqual([])
})

test.each([
  'DROP TABLE "response";',
  'DROP INDEX "response_new";',
  'ALTER TABLE "response" DROP COLUMN "status";',
  'ALTER TABLE "response" RENAME COLUMN "status" TO "state";',
  'ALTER TABLE "response" RENAME TO "answer";',
  'ALTER TABLE "response" ADD COLUMN "note" text NOT NULL;',
  'ALTER TABLE "response" ADD COLUMN "note" text UNIQUE;',
  'ALTER TABLE "response" ADD COLUMN "file" uuid REFERENCES "file"("id");',
  'ALTER TABLE "response" ALTER COLUMN "status" SET NOT NULL;',
  'ALTER TABLE "response" ALTER COLUMN "status" SET DATA TYPE integer;',
  'ALTER TABLE "response" ADD CONSTRAINT "positive" CHECK ("count" > 0);',
  'CREATE UNIQUE INDEX "response_new" ON "response" ("id");',
  'CREATE OR REPLACE FUNCTION node_roles() RETURNS integer LANGUAGE sql AS $$ select 1 $$;',
  'DELETE FROM "response";',
  'UPDATE "response" SET status = null;',
])('not additive: %s', (migration) => {
  expect(nonAdditiveStatements(migration)).toHaveLength(1)
})
