CREATE TABLE "login_attempt" (
	"hash" "bytea" PRIMARY KEY NOT NULL,
	"attempts" integer NOT NULL,
	"ends_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "login_attempt_ends_at" ON "login_attempt" USING btree ("ends_at");