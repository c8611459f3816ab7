CREATE TABLE "branding" (
	"part" text PRIMARY KEY NOT NULL,
	"description" text NOT NULL,
	"content" "bytea",
	"sha256" text NOT NULL,
	"updated_by" uuid NOT NULL,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "translation" (
	"language" text PRIMARY KEY NOT NULL,
	"texts" text NOT NULL,
	"sha256" text NOT NULL,
	"updated_by" uuid NOT NULL,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "settings_revision" (
	"revision" serial PRIMARY KEY NOT NULL,
	"actor_id" uuid NOT NULL,
	"patch" text NOT NULL,
	"before" text NOT NULL,
	"after" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);