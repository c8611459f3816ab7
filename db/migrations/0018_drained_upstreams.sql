CREATE TABLE "drained_upstream" (
	"name" text PRIMARY KEY NOT NULL,
	"drained_by" uuid NOT NULL,
	"drained_at" timestamp with time zone NOT NULL
);
