CREATE TABLE "known_permission" (
	"name" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
-- Permissions that any group grants were known before this table; all others are new at the next start.
INSERT INTO "known_permission" ("name") SELECT DISTINCT unnest("permissions") FROM "app_group";
