CREATE TABLE "budget_use" (
	"owner" text NOT NULL,
	"period" text NOT NULL,
	"tokens" bigint NOT NULL,
	"cost_nanos" bigint NOT NULL,
	"warned_at" timestamp with time zone,
	CONSTRAINT "budget_use_owner_period_pk" PRIMARY KEY("owner","period")
);
--> statement-breakpoint
CREATE TABLE "limit_bucket" (
	"key" text PRIMARY KEY NOT NULL,
	"used" double precision NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	"idle_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "limit_process" (
	"id" text PRIMARY KEY NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "limit_slot" (
	"key" text NOT NULL,
	"process_id" text NOT NULL,
	"slots" integer NOT NULL,
	CONSTRAINT "limit_slot_key_process_id_pk" PRIMARY KEY("key","process_id")
);
--> statement-breakpoint
ALTER TABLE "limit_slot" ADD CONSTRAINT "limit_slot_process_id_limit_process_id_fk" FOREIGN KEY ("process_id") REFERENCES "public"."limit_process"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "budget_use_period" ON "budget_use" USING btree ("period");--> statement-breakpoint
CREATE INDEX "limit_bucket_idle_at" ON "limit_bucket" USING btree ("idle_at");--> statement-breakpoint
CREATE INDEX "limit_slot_process_id" ON "limit_slot" USING btree ("process_id");