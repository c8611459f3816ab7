CREATE TABLE "seal_secret" (
	"id" smallint PRIMARY KEY NOT NULL,
	"secret" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "seal_secret_one" CHECK ("seal_secret"."id" = 1)
);
