CREATE TABLE "conversation" (
	"id" text PRIMARY KEY NOT NULL,
	"owner_id" uuid NOT NULL,
	"metadata" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "conversation_item" (
	"conversation_id" text NOT NULL,
	"position" integer NOT NULL,
	"item_id" text NOT NULL,
	"owner_id" uuid NOT NULL,
	"json" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "conversation_item_conversation_id_position_pk" PRIMARY KEY("conversation_id","position")
);
--> statement-breakpoint
CREATE TABLE "response" (
	"id" text PRIMARY KEY NOT NULL,
	"owner_id" uuid NOT NULL,
	"status" text NOT NULL,
	"background" boolean NOT NULL,
	"key_id" text,
	"previous_response_id" text,
	"conversation_id" text,
	"runner_id" text,
	"object" text NOT NULL,
	"request" text,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	"log_expires_at" timestamp with time zone,
	CONSTRAINT "response_status" CHECK ("response"."status" in ('queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'))
);
--> statement-breakpoint
CREATE TABLE "response_item" (
	"response_id" text NOT NULL,
	"direction" text NOT NULL,
	"position" integer NOT NULL,
	"item_id" text NOT NULL,
	"owner_id" uuid NOT NULL,
	"json" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "response_item_response_id_direction_position_pk" PRIMARY KEY("response_id","direction","position"),
	CONSTRAINT "response_item_direction" CHECK ("response_item"."direction" in ('input', 'output'))
);
--> statement-breakpoint
CREATE TABLE "response_log" (
	"response_id" text NOT NULL,
	"first" integer NOT NULL,
	"last" integer NOT NULL,
	"frames" text NOT NULL,
	CONSTRAINT "response_log_response_id_first_pk" PRIMARY KEY("response_id","first")
);
--> statement-breakpoint
CREATE TABLE "response_runner" (
	"id" text PRIMARY KEY NOT NULL,
	"seen_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "conversation_item" ADD CONSTRAINT "conversation_item_conversation_id_conversation_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversation"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "response_item" ADD CONSTRAINT "response_item_response_id_response_id_fk" FOREIGN KEY ("response_id") REFERENCES "public"."response"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "response_log" ADD CONSTRAINT "response_log_response_id_response_id_fk" FOREIGN KEY ("response_id") REFERENCES "public"."response"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "conversation_owner_id" ON "conversation" USING btree ("owner_id");--> statement-breakpoint
CREATE UNIQUE INDEX "conversation_item_conversation_id_item_id" ON "conversation_item" USING btree ("conversation_id","item_id");--> statement-breakpoint
CREATE INDEX "conversation_item_owner_id_item_id" ON "conversation_item" USING btree ("owner_id","item_id","created_at");--> statement-breakpoint
CREATE INDEX "response_owner_id_created_at" ON "response" USING btree ("owner_id","created_at");--> statement-breakpoint
CREATE INDEX "response_expires_at" ON "response" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "response_log_expires_at" ON "response" USING btree ("log_expires_at") WHERE "response"."log_expires_at" is not null;--> statement-breakpoint
CREATE INDEX "response_queued" ON "response" USING btree ("created_at","id") WHERE "response"."status" = 'queued';--> statement-breakpoint
CREATE INDEX "response_running" ON "response" USING btree ("runner_id") WHERE "response"."status" = 'in_progress';--> statement-breakpoint
CREATE INDEX "response_unfinished" ON "response" USING btree ("key_id") WHERE "response"."status" in ('queued', 'in_progress') and "response"."key_id" is not null;--> statement-breakpoint
CREATE INDEX "response_item_owner_id_item_id" ON "response_item" USING btree ("owner_id","item_id","created_at");